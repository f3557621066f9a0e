/** Counts rows beside the library that is measured, on connections of their own. */
import { execute } from '../postgres-server.ts'
import { openDatabase } from '../reference.ts'
import type { Counts } from './contender.ts'

/** Statements that return one number each; steps are zero if the library has none. */
export interface CountStatements {
  readonly waiting: string
  readonly finished: string
  readonly steps?: string
}

export async function countOnPostgres(url: string, asked: CountStatements): Promise<Counts> {
  const one = async (sql: string | undefined) => {
    if (sql === undefined) return 0
    const [row] = (await execute(url, sql)) as { count: string }[]
    return Number(row?.count)
  }
  return {
    waiting: await one(asked.waiting),
    finished: await one(asked.finished),
    steps: await one(asked.steps),
  }
}

export function countOnSqlite(path: string, asked: CountStatements): Counts {
  const database = openDatabase(path)
  const one = (sql: string | undefined) =>
    sql === undefined ? 0 : Number(Object.values(database.prepare(sql).get() ?? {})[0])
  try {
    return {
      waiting: one(asked.waiting),
      finished: one(asked.finished),
      steps: one(asked.steps),
    }
  } finally {
    database.close()
  }
}
