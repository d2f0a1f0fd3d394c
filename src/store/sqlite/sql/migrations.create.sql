-- unfenced: the table of migrations itself, made under the lock of whoever migrates
create table if not exists migrations(number integer primary key, name text not null, checksum text not null) strict
