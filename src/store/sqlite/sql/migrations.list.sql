-- read
select number, name, checksum from migrations order by number
