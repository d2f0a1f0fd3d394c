-- unfenced: the key is the fence: whoever inserts its row performs the call; others wait here until that is decided
insert into repeats(tenant, key, hash, answer, at) values (:tenant, :key, :hash, '', :at) on conflict do nothing
