--
-- Targets: foreign servers of wrapper bench_wire. What is refused, and by which words; nothing is connected to.
--
SET client_min_messages = warning;
\set VERBOSITY default
CREATE ROLE regress_target LOGIN;
GRANT EXECUTE ON FUNCTION bench.run TO regress_target;

-- Options of servers
CREATE SERVER regress_far FOREIGN DATA WRAPPER bench_wire OPTIONS (hots 'a');
CREATE SERVER regress_far FOREIGN DATA WRAPPER bench_wire OPTIONS (host 'a', user 'bob');
CREATE SERVER regress_far FOREIGN DATA WRAPPER bench_wire OPTIONS (host 'a', password 'secret');
CREATE SERVER regress_far FOREIGN DATA WRAPPER bench_wire OPTIONS (service 'a');
CREATE SERVER regress_far FOREIGN DATA WRAPPER bench_wire OPTIONS (passfile 'a');
CREATE SERVER regress_far FOREIGN DATA WRAPPER bench_wire OPTIONS (host 'a,b', port '1,2,3');
CREATE SERVER regress_far FOREIGN DATA WRAPPER bench_wire OPTIONS (host 'a', port '0');
CREATE SERVER regress_far FOREIGN DATA WRAPPER bench_wire OPTIONS (host 'a', sslmode 'perhaps');
CREATE SERVER regress_far FOREIGN DATA WRAPPER bench_wire OPTIONS (host 'a', target_session_attrs 'any-thing');
CREATE SERVER regress_far FOREIGN DATA WRAPPER bench_wire OPTIONS (host 'a', connect_timeout 'soon');
CREATE SERVER regress_far FOREIGN DATA WRAPPER bench_wire
    OPTIONS (host '/nonexistent', port '1', dbname 'a', sslmode 'disable', target_session_attrs 'any');
CREATE FOREIGN TABLE regress_far_table (a int) SERVER regress_far OPTIONS (table_name 'a');
SELECT fdwhandler, fdwvalidator::regproc FROM pg_foreign_data_wrapper WHERE fdwname = 'bench_wire';

-- Options of user mappings
CREATE USER MAPPING FOR regress_target SERVER regress_far OPTIONS (host 'a');
CREATE USER MAPPING FOR regress_target SERVER regress_far OPTIONS (sslpassword 'secret');
CREATE USER MAPPING FOR regress_target SERVER regress_far OPTIONS (password_required 'perhaps');

-- Who may
SET ROLE regress_target;
CREATE SERVER regress_own FOREIGN DATA WRAPPER bench_wire OPTIONS (host 'a');
SELECT bench.run(script => 'SELECT 1', driver => 'wire', target => 'regress_nowhere');
SELECT bench.run(script => 'SELECT 1', driver => 'wire', target => 'regress_far');
RESET ROLE;
GRANT USAGE ON FOREIGN SERVER regress_far TO regress_target;
SET ROLE regress_target;
SELECT bench.run(script => 'SELECT 1', driver => 'wire', target => 'regress_far');
CREATE USER MAPPING FOR CURRENT_USER SERVER regress_far OPTIONS (user 'bob');
SELECT bench.run(script => 'SELECT 1', driver => 'wire', target => 'regress_far');
ALTER USER MAPPING FOR CURRENT_USER SERVER regress_far OPTIONS (ADD password_required 'false');
ALTER USER MAPPING FOR CURRENT_USER SERVER regress_far OPTIONS (ADD sslkey '/nonexistent', ADD sslcert '/nonexistent');
ALTER USER MAPPING FOR CURRENT_USER SERVER regress_far OPTIONS (ADD password 'secret');
SELECT bench.run(script => 'SELECT 1', driver => 'wire', target => 'regress_far');
RESET ROLE;

-- What is no target
CREATE FOREIGN DATA WRAPPER regress_other;
CREATE SERVER regress_other FOREIGN DATA WRAPPER regress_other;
SELECT bench.run(script => 'SELECT 1', driver => 'wire', target => 'regress_other');
SELECT bench.run(script => 'SELECT 1', target => 'regress_far');
SELECT bench.run(script => 'SELECT 1', driver => 'wire', target => '');
SELECT bench.run(script => 'SELECT 1', driver => 'wire', target => 'regress_far', before => 'reload');
SELECT bench.run('pk_select', driver => 'wire', target => 'regress_nowhere');

-- The password for this server
CREATE SERVER bench_local FOREIGN DATA WRAPPER bench_wire;
CREATE USER MAPPING FOR regress_target SERVER bench_local OPTIONS (user 'bob', password 'secret');
GRANT USAGE ON FOREIGN SERVER bench_local TO regress_target;
SET ROLE regress_target;
SELECT bench.run(script => 'SELECT 1', driver => 'wire');
RESET ROLE;

-- What is not a superuser's does not stand for this server, and names no files for it to read
ALTER SERVER bench_local OWNER TO regress_target;
GRANT USAGE ON FOREIGN DATA WRAPPER bench_wire TO regress_target;
SET ROLE regress_target;
SET client_min_messages = error;
SELECT bench.run(script => 'SELECT 1', transactions => 1, driver => 'wire') AS run_id \gset
SET client_min_messages = warning;
CREATE SERVER regress_files FOREIGN DATA WRAPPER bench_wire
    OPTIONS (hostaddr '127.0.0.1', port '1', sslmode 'require', sslrootcert '/dev/zero');
RESET ROLE;
CREATE SERVER regress_files FOREIGN DATA WRAPPER bench_wire
    OPTIONS (hostaddr '127.0.0.1', port '1', sslmode 'require', sslrootcert '/dev/zero');
CREATE USER MAPPING FOR PUBLIC SERVER regress_files OPTIONS (user 'bob', password 'secret');
SELECT bench.run(script => 'SELECT 1', driver => 'wire', target => 'regress_files');
ALTER SERVER regress_files OPTIONS (SET sslrootcert '/dev/ptmx');
SELECT bench.run(script => 'SELECT 1', driver => 'wire', target => 'regress_files');
ALTER SERVER regress_files OWNER TO regress_target;
SELECT bench.run(script => 'SELECT 1', driver => 'wire', target => 'regress_files');
SET ROLE regress_target;
SELECT bench.run(script => 'SELECT 1', driver => 'wire', target => 'regress_files');
RESET ROLE;

-- What a connection's startup message takes for something else is no setting
SELECT bench.run(script => 'SELECT 1', driver => 'wire', target => 'regress_far',
    settings => '{"user": "bob"}');
SELECT bench.run(script => 'SELECT 1', driver => 'wire', target => 'regress_far',
    settings => '{"Replication": "database"}');
SELECT bench.run(script => 'SELECT 1', driver => 'wire', settings => '{"_pq_.x": "1"}');

-- Nothing is left behind
SELECT bench.delete_run(:run_id);
DROP SERVER bench_local, regress_files, regress_other, regress_far CASCADE;
DROP FOREIGN DATA WRAPPER regress_other;
DROP OWNED BY regress_target;
DROP ROLE regress_target;
SELECT count(*) FROM bench.runs WHERE target LIKE 'regress%';
