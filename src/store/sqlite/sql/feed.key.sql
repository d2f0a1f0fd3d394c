-- read
select cursor_key as key from meta
