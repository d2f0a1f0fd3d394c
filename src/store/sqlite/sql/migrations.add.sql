-- unfenced: under the lock of whoever migrates
insert into migrations(number, name, checksum) values (:number, :name, :checksum)
