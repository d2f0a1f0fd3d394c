-- read
-- Around the statement of a list: its rows up to the one that fills the page.
select b.* from (
  select a.*, %size% as row_bytes, sum(%size%) over (rows unbounded preceding) as page_bytes from (
%list%
  ) a) b
where b.page_bytes - b.row_bytes < coalesce(:page_bytes, 9223372036854775807)
