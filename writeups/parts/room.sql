-- Ends a write-up that asks for more clients than the server has room for, before it loads anything. Takes clients, an array.

SELECT max(n) > :most_clients AS is_too_much,
       format('max_worker_processes = %s has room for %s clients, not for %s. Set it to at least %s, or give other clients.',
              current_setting('max_worker_processes'), :most_clients, max(n),
              current_setting('max_worker_processes')::int - :most_clients + max(n)) AS problem
FROM unnest(:'clients'::int[]) AS n \gset
\if :is_too_much
    \warn :problem
    DO $$
    BEGIN
        RAISE insufficient_resources USING MESSAGE = 'not enough background worker slots';
    END $$;
\endif
