-- unfenced: the key is the fence: whoever inserts its row performs the call; others wait here until that is decided
insert into tape.repeats(tenant, key, hash, answer, at) values (:tenant, :key, :hash, '', tape.now_ms()) on conflict do nothing
