-- read
select cursor_key as key from tape.meta
