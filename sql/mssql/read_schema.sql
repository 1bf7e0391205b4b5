-- Caller: MigrationStorage::check_schema.
-- Intent: the tables of the schema as the server has them, to be compared with what the migrations make.
-- Invariant: none to protect, it reads the catalogue. Triggers that are disabled change nothing and are left out.
-- Twin: reads the catalogue views; SQLite has pragmas, and describes a database of its own for the comparison.
-- Locks: none kept.
-- Retry: safe, it reads.
-- Answers: TableName, LockEscalation; then TableName, ColumnName, TypeName, MaxLength (bytes, -1 for max), Scale,
--   CollationName, IsNullable, IsIdentity, FillsItself; then TableName, IndexName, Kind, IsUnique, IsPrimaryKey,
--   IsDisabled, Filter ('?': the login may not see it), ColumnName, IsDescending, IsIncluded; then TableName, TriggerName.
SET NOCOUNT ON;

SELECT /* chokaq:read_schema */
    CONVERT(nvarchar(128), t.name) AS TableName, CONVERT(nvarchar(60), t.lock_escalation_desc) AS LockEscalation
FROM sys.tables AS t
WHERE t.schema_id = SCHEMA_ID(N'chokaq')
ORDER BY t.name;

SELECT /* chokaq:read_schema */
    CONVERT(nvarchar(128), t.name) AS TableName, CONVERT(nvarchar(128), c.name) AS ColumnName,
    CONVERT(nvarchar(128), y.name) AS TypeName, CONVERT(int, c.max_length) AS MaxLength, CONVERT(int, c.scale) AS Scale,
    CONVERT(nvarchar(128), c.collation_name) AS CollationName, CONVERT(bit, c.is_nullable) AS IsNullable,
    CONVERT(bit, c.is_identity) AS IsIdentity,
    CASE WHEN c.is_identity = 1 OR c.is_computed = 1 OR c.default_object_id <> 0 OR y.name = N'timestamp' THEN 1 ELSE 0 END AS FillsItself
FROM sys.tables AS t
INNER JOIN sys.columns AS c ON c.object_id = t.object_id
INNER JOIN sys.types AS y ON y.user_type_id = c.user_type_id
WHERE t.schema_id = SCHEMA_ID(N'chokaq')
ORDER BY t.name, c.column_id;

SELECT /* chokaq:read_schema */
    CONVERT(nvarchar(128), t.name) AS TableName, CONVERT(nvarchar(128), i.name) AS IndexName,
    CONVERT(nvarchar(60), i.type_desc) AS Kind, CONVERT(bit, i.is_unique) AS IsUnique,
    CONVERT(bit, i.is_primary_key) AS IsPrimaryKey, CONVERT(bit, i.is_disabled) AS IsDisabled,
    CASE WHEN i.has_filter = 1 THEN COALESCE(CONVERT(nvarchar(max), i.filter_definition), N'?') END AS Filter,
    CONVERT(nvarchar(128), c.name) AS ColumnName, CONVERT(bit, k.is_descending_key) AS IsDescending,
    CONVERT(bit, k.is_included_column) AS IsIncluded
FROM sys.tables AS t
INNER JOIN sys.indexes AS i ON i.object_id = t.object_id
INNER JOIN sys.index_columns AS k ON k.object_id = i.object_id AND k.index_id = i.index_id
INNER JOIN sys.columns AS c ON c.object_id = k.object_id AND c.column_id = k.column_id
-- Of a partitioned index the partitioning column may be listed without being one of its own.
WHERE t.schema_id = SCHEMA_ID(N'chokaq') AND i.is_hypothetical = 0 AND (k.key_ordinal > 0 OR k.is_included_column = 1)
ORDER BY t.name, i.index_id, k.is_included_column, k.key_ordinal, k.index_column_id;

SELECT /* chokaq:read_schema */
    CONVERT(nvarchar(128), t.name) AS TableName, CONVERT(nvarchar(128), g.name) AS TriggerName
FROM sys.tables AS t
INNER JOIN sys.triggers AS g ON g.parent_id = t.object_id
WHERE t.schema_id = SCHEMA_ID(N'chokaq') AND g.is_disabled = 0
ORDER BY t.name, g.name;
