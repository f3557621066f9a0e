/** Stores by name, so that a program moves from a file to a server by changing one text. */
import type { Lifecycle } from '../core/lifecycles/lifecycle.ts'
import type { Logger } from '../core/ports.ts'
import type { Environment } from '../environment/system.ts'
import type { PayloadOptions } from '../stores/requests.ts'
import type { Store } from '../stores/store.ts'
import { StoreNameInvalid } from './errors.ts'

/** What an opener is given beside the name. */
export interface OpenOptions extends PayloadOptions {
  readonly lifecycles: readonly Lifecycle[]
  readonly environment: Environment
  readonly logger: Logger
  /** How many connections to a server there may be. */
  readonly connections?: number
}

/** Opens `sqlite:PATH`, `sqlite::memory:` or `postgres://…`. */
export async function openStore(name: string, options: OpenOptions): Promise<Store> {
  if (/^postgres(ql)?:\/\//.test(name)) {
    const { openPostgresStore } = await import('../stores/postgres/open.ts')
    return openPostgresStore({ connectionString: name, ...options })
  }
  const path = /^sqlite:(.+)$/s.exec(name)?.[1]
  if (path === undefined) throw new StoreNameInvalid(name)
  const { openSqliteStore } = await import('../stores/sqlite/store.ts')
  return openSqliteStore({ path, ...options })
}
