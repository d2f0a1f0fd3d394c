-- read
select store_id, epoch, cast(token_floor as text) as token_floor, boot, anchor, file, :at as at from meta
