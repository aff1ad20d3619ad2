-- A table size of write-up D. Takes published_rows and load_jobs; adds to sizes and sweep_ids.

SELECT greatest(1, round(:published_rows * :scale::numeric))::bigint AS rows \gset
SELECT bench.load('pk', :rows, :load_jobs, :'options') AS loaded \gset
SELECT bench.sweep('pk_select', :'clients', secs => :secs, rounds => :rounds, tags => :'tags') AS select_sweep \gset
SELECT bench.sweep('pk_update', :'clients', secs => :secs, rounds => :rounds, tags => :'tags') AS update_sweep \gset
SELECT concat_ws(',', nullif(:'sweep_ids', ''), :'select_sweep', :'update_sweep') AS sweep_ids,
       :'sizes'::jsonb || jsonb_build_object('published_rows', :published_rows, 'rows', rows,
           'rows_per_sec', rows_per_sec, 'levels', index_levels, 'sweeps', ARRAY[:select_sweep, :update_sweep]) AS sizes
FROM bench.fixtures WHERE schema = :'schema' AND name = 'pk' \gset
