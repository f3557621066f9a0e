/**
 * Somebody else who writes to the same SQLite file: takes the write lock, says so, and keeps it for
 * as long as it lives. It ends when its parent closes the channel, or is killed in the middle.
 */
import { say, settings } from './child.ts'
import { TABLE } from './settings.ts'
import { openHandle } from './sqlite-file.ts'

const handle = openHandle(settings.store.replace(/^sqlite:/, ''))
// Others may be stopped while they hold the lock.
handle.exec('PRAGMA busy_timeout = 60000')
handle.exec('BEGIN IMMEDIATE')
handle.exec(`INSERT INTO ${TABLE} (job, attempt) VALUES ('never', 0)`)
say({ kind: 'ready' })
