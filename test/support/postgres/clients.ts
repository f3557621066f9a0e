// Plain clients of the tests.
import { Client } from 'pg'
import { onTestFinished } from 'vitest'

/** A connection that lasts as long as the test; it may be broken without notice. */
export async function connected(url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  onTestFinished(() => client.end().catch(() => {}))
  return client
}

/** The only value that a query returns. */
export async function single(client: Client, sql: string): Promise<unknown> {
  const { rows } = await client.query({ text: sql, rowMode: 'array' })
  return rows[0]?.[0]
}
