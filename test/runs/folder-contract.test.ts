// The contract of journals, on a folder of real files and on simulated ones.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openFolderJournal } from 'pawl/runs'
import { SeededRandom, SimulatedFiles } from 'pawl/testing'
import { afterAll, describe, it } from 'vitest'
import { journalContract } from '../contract/journal/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'pawl-runs-'))
let number = 0

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('a folder of files', () => {
  journalContract({
    describe,
    it,
    open: async (environment) => {
      const path = join(folder, `runs-${number++}`)
      const again = () => openFolderJournal({ path, environment })
      return { journal: await again(), again, advance: (ms) => environment.advance(ms) }
    },
  })
})

describe('a folder of simulated files', () => {
  journalContract({
    describe,
    it,
    open: async (environment) => {
      const files = new SimulatedFiles(new SeededRandom(1))
      const again = () => openFolderJournal({ path: 'runs', environment, files, locks: files })
      return { journal: await again(), again, advance: (ms) => environment.advance(ms) }
    },
  })
})
