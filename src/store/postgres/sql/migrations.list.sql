-- read
select number, name, checksum from tape.migrations order by number
