/** The doctor's access to a schema: the settings of its transactions, and what servers report. */
import type { Replication } from '../contract/examination.ts'
import { type ExaminationAccess, ExaminationSide, type Reading } from '../examination-side.ts'
import type { VerbName } from '../verb-table.ts'
import type { Step, Tx } from '../verbs/operations.ts'
import { CATALOGUE_SETTINGS } from './catalogue.ts'
import type { OwnSession } from './connect.ts'
import { atOf, type Shared } from './context.ts'
import { perform } from './operations.ts'
import { replication } from './replication.ts'
import { drift, restore } from './schema.ts'

/** How the store reads and writes. */
export interface Access {
  now(): number
  look<T>(settings: string, work: (session: OwnSession) => Promise<T>): Promise<T>
  change<T>(verb: VerbName, work: (session: OwnSession, now: number) => Promise<T>): Promise<T>
}

/** All statements of a transaction see the same moment. */
const ONE_MOMENT = 'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY'
/** A verb that reads every row does so in the order of the table. */
const IN_TABLE_ORDER = 'SET LOCAL enable_seqscan = on'
const EVERY_ROW_MS = 600_000

const SETTINGS = {
  'some-rows': ONE_MOMENT,
  'every-row': `${ONE_MOMENT}; ${IN_TABLE_ORDER}`,
}

/** The doctor's access to a schema. */
export class PostgresExamination extends ExaminationSide {
  readonly #look: Access['look']

  constructor(access: Access, shared: Shared) {
    super(accessTo(access, shared))
    this.#look = access.look
  }

  replication(): Promise<Replication> {
    return this.#look(ONE_MOMENT, replication)
  }
}

function accessTo({ now, look, change }: Access, shared: Shared): ExaminationAccess {
  return {
    look: (verb, reading = 'some-rows') =>
      look(SETTINGS[reading], async (session) => {
        if (reading === 'every-row') await session.takeTime(EVERY_ROW_MS)
        return perform(atOf(shared, session, now()), verb)
      }),
    perform: <T>(name: VerbName, verb: (tx: Tx) => Step<T>, reading?: Reading) =>
      change(name, async (session, at) => {
        if (reading === 'every-row') {
          await session.run(IN_TABLE_ORDER)
          await session.takeTime(EVERY_ROW_MS)
        }
        return perform(atOf(shared, session, at), verb)
      }),
    drift: () => look(CATALOGUE_SETTINGS, (session) => drift(session, shared.schema)),
    restore: (object) => change('restore', (session) => restore(session, shared.schema, object)),
  }
}
