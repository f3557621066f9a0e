// That memory stays flat: one process lives through many rounds of jobs, and what it holds at the
// end is compared with what it held in the middle, when everything had been done many times over.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { inFolder, median, type Result, resultOf } from './measure.ts'
import type { Sample } from './memory-load.ts'

const JOBS = 200_000
const ROUNDS = 40

const NAMES = {
  heap: 'memory of the heap, MiB, end against middle',
  rss: 'memory of the process, MiB, end against middle',
} as const

/** Measures the heap and the whole process; a tenth of the jobs where it should be quick. */
export async function benchMemory(quick: boolean, only: string): Promise<Result[]> {
  const kinds = (['heap', 'rss'] as const).filter((kind) => NAMES[kind].includes(only))
  if (kinds.length === 0) return []
  const samples = await inFolder((folder) => liveThrough(folder, quick ? JOBS / 10 : JOBS))
  const [middle, end] = [samples.slice(ROUNDS * 0.4, ROUNDS * 0.6), samples.slice(ROUNDS * 0.8)]
  return kinds.map((kind) => {
    const held = (during: Sample[]) => median(during.map((sample) => sample[kind])) / 2 ** 20
    return resultOf(NAMES[kind], [{ pawl: held(end), reference: held(middle) }])
  })
}

/** A process of its own, so that nothing but these jobs is in its memory. */
async function liveThrough(folder: string, jobs: number): Promise<Sample[]> {
  const program = fileURLToPath(import.meta.resolve('./memory-load.js'))
  const args = ['--expose-gc', program, folder, String(ROUNDS), String(jobs / ROUNDS)]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  return JSON.parse(stdout) as Sample[]
}
