INSERT INTO wide (crt_time) VALUES (now());
