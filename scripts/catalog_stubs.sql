-- The columns of SQL Server's catalogue views that our statements read, for a binder that knows no system objects.
-- Types as Microsoft documents them: https://learn.microsoft.com/sql/relational-databases/system-catalog-views
CREATE VIEW sys.tables AS
SELECT CAST(N'' AS sysname) AS name, CAST(0 AS int) AS object_id, CAST(0 AS int) AS schema_id,
    CAST(N'' AS nvarchar(60)) AS lock_escalation_desc;
GO
CREATE VIEW sys.columns AS
SELECT CAST(0 AS int) AS object_id, CAST(N'' AS sysname) AS name, CAST(0 AS int) AS column_id, CAST(0 AS int) AS user_type_id,
    CAST(0 AS smallint) AS max_length, CAST(0 AS tinyint) AS scale, CAST(N'' AS sysname) AS collation_name,
    CAST(0 AS bit) AS is_nullable, CAST(0 AS bit) AS is_identity, CAST(0 AS bit) AS is_computed, CAST(0 AS int) AS default_object_id;
GO
CREATE VIEW sys.types AS
SELECT CAST(N'' AS sysname) AS name, CAST(0 AS int) AS user_type_id;
GO
CREATE VIEW sys.indexes AS
SELECT CAST(0 AS int) AS object_id, CAST(N'' AS sysname) AS name, CAST(0 AS int) AS index_id, CAST(N'' AS nvarchar(60)) AS type_desc,
    CAST(0 AS bit) AS is_unique, CAST(0 AS bit) AS is_primary_key, CAST(0 AS bit) AS is_disabled, CAST(0 AS bit) AS is_hypothetical,
    CAST(0 AS bit) AS has_filter, CAST(N'' AS nvarchar(max)) AS filter_definition;
GO
CREATE VIEW sys.index_columns AS
SELECT CAST(0 AS int) AS object_id, CAST(0 AS int) AS index_id, CAST(0 AS int) AS index_column_id, CAST(0 AS int) AS column_id,
    CAST(0 AS tinyint) AS key_ordinal, CAST(0 AS bit) AS is_descending_key, CAST(0 AS bit) AS is_included_column;
GO
CREATE VIEW sys.triggers AS
SELECT CAST(N'' AS sysname) AS name, CAST(0 AS int) AS parent_id, CAST(0 AS bit) AS is_disabled;
GO
