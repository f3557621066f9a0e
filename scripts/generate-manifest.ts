/** Writes the manifest of the PostgreSQL store from what the migrations make on a server. */
import { writeFileSync } from 'node:fs'
import { openPostgresStore } from 'pawl/postgres'
import pg from 'pg'
import { systemEnvironment } from '../src/environment/system.ts'
import { CATALOGUE_SETTINGS, readCatalogue } from '../src/stores/postgres/catalogue.ts'
import { Database } from '../src/stores/postgres/connect.ts'
import { startPostgres } from '../test/support/postgres/server.ts'
import { MANIFEST_PATH, MANIFEST_SCHEMA, manifestDocument } from './documents/postgres-manifest.ts'

const server = await startPostgres()
const pool = new pg.Pool({ connectionString: server.url, max: 1 })
try {
  await (await openPostgresStore({ pool, schema: MANIFEST_SCHEMA })).close()
  const schema = `"${MANIFEST_SCHEMA}"`
  const options = {
    schema,
    durability: 'full',
    borrowed: true,
    timeoutMs: 10_000,
  } as const
  const database = new Database(pool, options, systemEnvironment())
  const { objects } = await database.transaction(
    (session) => readCatalogue(session, schema),
    undefined,
    CATALOGUE_SETTINGS,
  )
  writeFileSync(MANIFEST_PATH, manifestDocument(objects))
} finally {
  await pool.end()
  await server.stop()
}
