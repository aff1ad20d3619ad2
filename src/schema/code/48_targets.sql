-- Servers that connections of driver => 'wire' lead to.

CREATE FUNCTION bench_internal.check_options(options text[], catalog oid) RETURNS void
    VOLATILE PARALLEL UNSAFE LANGUAGE c AS 'MODULE_PATHNAME', 'check_options_wrapper';
COMMENT ON FUNCTION bench_internal.check_options IS
'Validator of foreign-data wrapper bench_wire: raises an error for options of a foreign server or a user mapping that it does not accept.';

CREATE FOREIGN DATA WRAPPER bench_wire NO HANDLER VALIDATOR bench_internal.check_options;
COMMENT ON FOREIGN DATA WRAPPER bench_wire IS
'Servers for bench.run(driver => ''wire'', target => …): CREATE SERVER … FOREIGN DATA WRAPPER bench_wire OPTIONS (host …, port …, dbname …, sslmode …) and CREATE USER MAPPING … OPTIONS (user …, password …). It has no foreign tables.';
