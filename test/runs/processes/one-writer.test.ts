// A run in a folder has one writer over all processes. The right ends with the process that has it,
// and by nothing else.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openFolderJournal } from 'pawl/runs'
import { describe, expect, it } from 'vitest'
import { withHelpers } from '../../processes/children.ts'
import { freshFolder } from '../../processes/folder.ts'

const HOLDER = new URL('./holder.mjs', import.meta.url)
const AUTHOR = { trace_id: 't', span_id: 's', actor: 'test' }
const LONG = { timeout: 120_000 }

interface Told {
  readonly done?: string
  readonly code?: string
  readonly seq?: number
  readonly details?: { readonly holder?: { readonly pid: number } }
}

describe('several processes', LONG, () => {
  it('create the same run: one succeeds, and the others learn its holder', async () => {
    const path = join(freshFolder(), 'runs')
    await withHelpers(HOLDER, 3, async (helpers) => {
      for (const helper of helpers) await helper.ask({ kind: 'journal', path })
      const asked = helpers.map((helper) => helper.ask<Told>({ kind: 'create', runId: 'run-1' }))
      const told = await Promise.all(asked)
      expect(told.filter(({ done }) => done === 'create')).toHaveLength(1)
      const first = told.findIndex(({ done }) => done === 'create')
      const [holder, other] = [helpers[first], helpers[(first + 1) % 3]]
      if (holder === undefined || other === undefined) throw new Error('there are three')
      const refused = await other.ask<Told>({ kind: 'open', runId: 'run-1' })
      expect(refused.code).toBe('E_RUN_HELD')
      const file = JSON.parse(readFileSync(join(path, 'run-1', '.holder.json'), 'utf8'))
      expect(refused.details?.holder).toEqual(file)

      await holder.ask({ kind: 'applyCommand', command: { kind: 'move', to: 'CLONED_INPUTS' } })
      await holder.ask({ kind: 'close' })
      expect(await other.ask<Told>({ kind: 'open', runId: 'run-1' })).toMatchObject({ seq: 2 })
    })
  })

  it('take turns, and the log has all their events once, in order', async () => {
    const path = join(freshFolder(), 'runs')
    await withHelpers(HOLDER, 2, async (helpers) => {
      for (const helper of helpers) await helper.ask({ kind: 'journal', path })
      await helpers[0]?.ask({ kind: 'create', runId: 'run-1' })
      await helpers[0]?.ask({ kind: 'close' })
      for (let turn = 0; turn < 10; turn++) {
        const helper = helpers[turn % 2]
        expect(await helper?.ask<Told>({ kind: 'open', runId: 'run-1' })).toMatchObject({
          seq: turn + 1,
        })
        const command = { kind: 'change-section', section: 's', to: `${turn}` }
        await helper?.ask({ kind: 'applyCommand', command })
        await helper?.ask({ kind: 'close' })
      }
    })
    await using journal = await openFolderJournal({ path })
    expect((await journal.peek('run-1'))?.last_seq).toBe(11)
    expect(await journal.verify('run-1')).toEqual([])
  })
})

describe('a process that is killed while it writes', LONG, () => {
  it('releases the run at once, and all acknowledged events are in the log', async () => {
    const path = join(freshFolder(), 'runs')
    const acknowledged: string[] = []
    for (let round = 0; round < 6; round++) {
      const child = fork(fileURLToPath(HOLDER), { execArgv: [] })
      const told: Told[] = []
      const before = acknowledged.length
      const poured = new Promise<void>((enough, fail) => {
        child.on('exit', (code) => fail(new Error(`the child has ended with ${code}`)))
        child.on('message', (message: Told & { acknowledged?: string }) => {
          if ('message' in message) fail(new Error(JSON.stringify(message)))
          if (message.acknowledged === undefined) told.push(message)
          else acknowledged.push(message.acknowledged)
          if (acknowledged.length > before + 40) enough()
        })
      })
      child.send({ kind: 'journal', path })
      await once(child, 'message')
      child.send({ kind: round === 0 ? 'create' : 'open', runId: 'run-1' })
      await once(child, 'message')
      expect(told.every(({ code }) => code === undefined)).toBe(true)
      child.send({ kind: 'pour' })
      await poured
      child.kill('SIGKILL')
      await once(child, 'exit')

      await using journal = await openFolderJournal({ path })
      const writer = await journal.open('run-1', AUTHOR)
      await writer.close()
      const ids = new Set<string>()
      for await (const { event_id } of (await journal.read('run-1')).events()) ids.add(event_id)
      for (const id of acknowledged) expect(ids.has(id)).toBe(true)
      expect(await journal.verify('run-1')).toEqual([])
    }
  })
})
