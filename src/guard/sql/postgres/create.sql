-- unfenced: an empty table, made once by whoever owns the database
create table if not exists tape_guards(scope text primary key, token bigint not null)
