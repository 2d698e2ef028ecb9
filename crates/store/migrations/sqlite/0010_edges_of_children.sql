-- To read the edges of a workflow from the index alone.
DROP INDEX edge_child;
CREATE INDEX edge_child ON edge (child, parent, condition);
