-- unfenced: whoever was silent for so long is gone
delete from processes where at < :at - :older_ms
