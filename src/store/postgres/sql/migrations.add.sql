-- unfenced: under the lock of whoever migrates
insert into tape.migrations(number, name, checksum) values (:number, :name, :checksum)
