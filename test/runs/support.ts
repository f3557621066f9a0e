// What the tests of damaged runs share: a journal on simulated files, whose bytes a test can read
// and replace at will.
import { decideRun } from 'pawl/rules'
import { documentationRun, type Journal, openFolderJournal, type RunFact } from 'pawl/runs'
import { SeededRandom, SimulatedFiles, type TestEnvironment, testEnvironment } from 'pawl/testing'
import { AUTHOR, JournalBench } from '../contract/journal/bench.ts'

export { AUTHOR, all, applyCommand, factsOf } from '../contract/journal/bench.ts'

export const RUN = 'run-1'
/** For tests of many small steps, on a machine that others may use as well. */
export const LONG = { timeout: 120_000 }
export const LOG = 'events.ndjson'
export const SNAPSHOT = 'snapshot.json'

/** A run on simulated files. */
export class Place {
  readonly environment: TestEnvironment = testEnvironment()
  readonly files = new SimulatedFiles(new SeededRandom(1))

  /** The journal, as a new process would open it. */
  open(): Promise<Journal> {
    const { environment, files } = this
    return openFolderJournal({ path: 'runs', environment, files, locks: files })
  }

  /** Makes a run with a little of everything, and gives it free. */
  async example(): Promise<void> {
    const journal = await this.open()
    const again = () => this.open()
    await new JournalBench(this.environment, { journal, again, advance: () => {} }).example(RUN)
    await journal.close()
  }

  /** The bytes of a file of the run; nothing where there is none. */
  async get(name: string): Promise<Buffer | undefined> {
    const handle = await this.files.open(`runs/${RUN}/${name}`, 'read')
    return handle && Buffer.from(await handle.read(0, (await handle.info()).size))
  }

  /** Replaces a file of the run. */
  async put(name: string, content: Uint8Array | string): Promise<void> {
    const handle = await this.files.open(`runs/${RUN}/${name}`, 'append')
    await handle.truncate(0)
    await handle.append(Buffer.from(content))
    await handle.sync()
  }

  remove(name: string): Promise<void> {
    return this.files.remove(`runs/${RUN}/${name}`)
  }

  names(): Promise<string[]> {
    return this.files.list(`runs/${RUN}`)
  }

  /** Every file of the run, by name. */
  async everything(): Promise<Record<string, string>> {
    const files: Record<string, string> = {}
    for (const name of await this.names()) {
      if (name !== 'artifacts') files[name] = (await this.get(name))?.toString('base64') ?? ''
    }
    return files
  }
}

/** A log in lines, each with where it begins. */
export function linesOf(log: Buffer): { text: string; offset: number }[] {
  let offset = 0
  return log
    .toString('latin1')
    .split('\n')
    .slice(0, -1)
    .map((text) => {
      const line = { text, offset }
      offset += text.length + 1
      return line
    })
}

/** The facts by which a damaged run fails, whatever is left of it. */
export function failureFacts(run: Parameters<typeof decideRun>[1]): RunFact[] {
  const created = run === null ? take(null, { kind: 'create' }) : []
  const facts: RunFact[] = [
    ...created,
    {
      type: 'ISSUE_OPENED',
      data: { issue: 'SnapshotInvalid', severity: 'blocker', message: 'The log is damaged' },
    },
    {
      type: 'RUN_STATE_CHANGED',
      data: { from_state: run?.run_state ?? 'CREATED', to_state: 'FAILED' },
    },
    { type: 'RUN_FAILED', data: { reason: 'SnapshotInvalid' } },
  ]
  return facts
}

function take(run: null, command: Parameters<typeof decideRun>[2]): readonly RunFact[] {
  const decision = decideRun(documentationRun, run, command)
  if (decision.kind !== 'facts') throw new Error(`${command.kind} was refused`)
  return decision.facts
}

/** Opens the run for writing and gives it free again. */
export async function mend(journal: Journal): Promise<void> {
  await (await journal.open(RUN, AUTHOR)).close()
}
