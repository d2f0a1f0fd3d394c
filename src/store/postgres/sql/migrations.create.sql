-- unfenced: the table of migrations itself, made under the lock of whoever migrates
create table if not exists tape.migrations(number bigint primary key, name text not null, checksum text not null)
