-- read
select store_id, channel, epoch, cast(token_floor as text) as token_floor, timeline, tape.timeline() as timeline_now,
  tape.now_ms() as at, current_setting('server_version_num')::bigint as server_version,
  current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit,
  current_setting('full_page_writes') as full_page_writes, pg_is_in_recovery() as standby
from tape.meta
