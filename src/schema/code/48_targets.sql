-- Servers that connections of driver => 'wire' lead to.

CREATE FUNCTION bench_internal.check_options(options text[], catalog oid) RETURNS void
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'check_options_wrapper';
COMMENT ON FUNCTION bench_internal.check_options IS
'Validator of foreign-data wrapper bench_wire: raises an error for options of a foreign server or a user mapping that it does not accept.';

DO $$ BEGIN
IF NOT EXISTS (SELECT FROM pg_foreign_data_wrapper w JOIN pg_depend d ON d.classid = 'pg_foreign_data_wrapper'::regclass AND d.objid = w.oid
               JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
               WHERE w.fdwname = 'bench_wire' AND d.deptype = 'e' AND e.extname = 'pgbench_ext') THEN
CREATE FOREIGN DATA WRAPPER bench_wire NO HANDLER VALIDATOR bench_internal.check_options;
END IF;
END $$;
COMMENT ON FOREIGN DATA WRAPPER bench_wire IS
'Servers for bench.run(driver => ''wire'', target => …): CREATE SERVER … FOREIGN DATA WRAPPER bench_wire OPTIONS (host …, port …, dbname …, sslmode …) and CREATE USER MAPPING … OPTIONS (user …, password …). It has no foreign tables.';
