-- Ends write-up C where a node lacks connections or worker slots for its clients, before it loads anything large: a
-- transaction of each client on small tables, first on this node, then on all. Takes one_clients, each_clients.

SELECT :'options'::jsonb || '{"distribute": "account"}' AS tpcb_options \gset
SELECT bench.load('tpcb', options => :'tpcb_options') AS loaded \gset
\set ON_ERROR_STOP off
SELECT bench.run('tpcb', :one_clients, transactions => 1, tags => :'tags') AS run_id \gset
\set failed_here :ERROR
SELECT bench.run('tpcb', :each_clients, transactions => 1, nodes => 'all', tags => :'tags') AS run_id \gset
\set failed_on_all :ERROR
\set ON_ERROR_STOP on
SELECT :'failed_here' OR :'failed_on_all' AS is_too_much \gset
\if :is_too_much
    \set keep off
    \ir end.sql
    DO $$
    BEGIN
        RAISE insufficient_resources USING MESSAGE = 'a node cannot bear the clients of this write-up';
    END $$;
\endif
