\set x debug(case when :scale > 1 and not (:client_id is null) then random_zipfian(1, 10, 1.5) else permute(3, 10, 5) end)
\if :x = 1
SELECT 1 AS one \; SELECT 2 AS two \gset pre_
\elif hash_fnv1a(:x) % 2 << 3 | 4 # 5 <> ~1
INSERT INTO t_:client_id VALUES (':x', "a:x", $q$ :x $q$, :x::int, E'\'' /* c */); -- :y
\else
\sleep :x us
\endif
COMMIT;
\set y least(1e3, -9223372036854775808, greatest(pi(), exp(1)), ln(2), pow(2, 3), sqrt(2), mod(7,3), int(2.5), double(1), abs(-1), random_gaussian(1,9,2.5), random_exponential(1,9,2))
