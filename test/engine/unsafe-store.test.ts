// A worker whose process has lost its locks on the file stops, and says why.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createPawl, defineJob } from 'pawl'
import { StoreUnsafe } from 'pawl/sqlite'
import { expect, it, onTestFinished } from 'vitest'

it.skipIf(process.platform !== 'linux')(
  'a worker stops when the locks of its process on the file are gone',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-unsafe-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const path = join(folder, 'jobs.db')
    const errors: unknown[] = []
    const job = defineJob({ name: 'reads the file', run: () => void readFileSync(path) })
    const pawl = await createPawl({ store: `sqlite:${path}`, jobs: [job] })
    const worker = await pawl.work({
      onEvent: (event) => void (event.type === 'error' && errors.push(event.error)),
    })
    const ended = expect(worker.ended).rejects.toThrow(StoreUnsafe)
    await pawl.enqueue(job, null)
    await ended
    expect(errors).toContainEqual(expect.any(StoreUnsafe))
    await pawl.close()
  },
)
