-- tpcb_select and tpcb from the coordinator, of write-up C. Takes tables, the name of a kind of them, and distribution, the
-- load options that make it; adds to pairs and sweep_ids.

SELECT :'distribution'::jsonb || jsonb_build_object('schema', :'schema', 'scale', :tpcb_scale) AS tpcb_options \gset
SELECT bench.load('tpcb', options => :'tpcb_options') AS loaded \gset
SELECT bench.sweep('tpcb_select', ARRAY[:one_clients], secs => :secs, rounds => :rounds, before => 'vacuum', tags => :'tags') AS select_sweep \gset
SELECT bench.sweep('tpcb', ARRAY[:one_clients], secs => :secs, rounds => :rounds, before => 'vacuum', tags => :'tags') AS tpcb_sweep \gset
SELECT concat_ws(',', nullif(:'sweep_ids', ''), :'select_sweep', :'tpcb_sweep') AS sweep_ids,
       :'pairs'::jsonb || jsonb_build_object('place', jsonb_array_length(:'pairs'), 'tables', :'tables',
           'tpcb_select', :select_sweep, 'tpcb', :tpcb_sweep) AS pairs \gset
