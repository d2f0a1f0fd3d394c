-- unfenced: whoever was silent for so long is gone
delete from tape.processes where at < (select tape.now_ms()) - :older_ms
