-- An edge is updated once, when its parent ends. With room for the second version on the same page, no
-- index is written then.
ALTER TABLE duly.edge SET (fillfactor = 45);
