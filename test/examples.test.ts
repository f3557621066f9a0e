// Documents show code that runs: what the README prints is a file that is compiled and executed.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'

const snippets = readdirSync('examples/readme')
const programs = readdirSync('examples').filter((name) => /^\d/.test(name))

describe('the README and the page on building blocks', () => {
  it('show only code that is in examples/readme, and all of it', () => {
    const pages = ['README.md', 'docs/guides/building-blocks.md']
    const shown = pages.flatMap((page) => [
      ...readFileSync(page, 'utf8').matchAll(/```ts\n(.*?)```/gs),
    ])
    const files = snippets.map((name) => readFileSync(`examples/readme/${name}`, 'utf8'))
    expect(shown.map(([, code]) => code).sort()).toEqual(files.sort())
  })

  it.each(snippets)('show code that runs: %s', (name) => {
    run(`readme/${name}`)
  })
})

describe('the examples', () => {
  it.each(programs)('%s ends by itself and gives one JSON object as its last line', (name) => {
    const lastLine = run(`${name}/main.ts`, '--json').trimEnd().split('\n').at(-1)
    expect(JSON.parse(lastLine ?? '')).toBeTypeOf('object')
  })

  it('show a job that is committed once and keeps every promise', () => {
    const output = run('01-lifecycle/main.ts', '--json')
    expect(JSON.parse(output)).toMatchObject({ state: 'succeeded', commits: 1, violations: [] })
  })

  it('show a job that waits for an approval, and asks for it once', () => {
    expect(JSON.parse(run('09-approval/main.ts', '--json'))).toMatchObject({
      ...{ sent: 'sent', again: 'same', asked: 2, attempts: 3, by: 'ann' },
      forgotten: 'Terminal: there was no answer',
    })
  })

  it('show a flow that goes on after a redrive, invoked jobs and a batch', () => {
    const shown = JSON.parse(run('10-flows/main.ts', '--json'))
    expect(shown).toMatchObject({
      stuck: 'dependency_failed',
      report: { month: '11', pages: ['page 1', 'page 2', 'page 3'], cents: 300, mail: 'failed' },
      book: { printed: 3, cents: 30 },
      ...{ published: 'all pages', members: 2 },
    })
    expect(shown.command).toMatch(/^pawl job retry [0-9a-f-]+ --reason …$/)
  })

  it('show a release that takes over the jobs of another version', () => {
    expect(JSON.parse(run('06-versions/main.ts', '--json'))).toEqual({
      foreseen: 3,
      states: Array(3).fill('v2 delivered'),
      healthy: true,
      refused: 'E_MACHINE_CHANGED',
    })
  })

  it('show orders that get one invoice each, also if a worker comes too late', () => {
    expect(JSON.parse(run('02-sqlite-store/main.ts', '--json'))).toEqual({
      ...{ orders: 3, succeeded: 3, attempts: 4, invoices: 3, delivered: 3 },
      ...{ lateCommit: 'E_STALE_FENCE', violations: [] },
    })
  })
})

describe('the documentation pipeline', () => {
  it('is killed, resumed on changed pages, and proposes each section once', () => {
    const summary = JSON.parse(run('docs-pipeline/main.ts', '--json'))
    expect(summary).toMatchObject({
      ...{ outcome: 'done', state: 'DONE', fixAttempts: 1 },
      sections: { pawls: 'proposed', ratchets: 'proposed', winches: 'proposed' },
      commits: [expect.stringMatching(/^[0-9a-f]{40}$/)],
    })
  })
})

describe('the documentation pipeline in a folder', () => {
  it('is done in the end, though it is killed whenever it comes to FIXING', () => {
    const dir = freshFolder()
    const program = resolve('.build/programs/examples/docs-pipeline/main.js')
    for (let kill = 0; kill < 2; kill++) {
      const killed = spawnSync(process.execPath, [program, '--dir', dir, '--kill-at', 'FIXING'])
      expect(killed.signal).toBe('SIGKILL')
    }
    const summary = JSON.parse(run('docs-pipeline/main.ts', '--dir', dir, '--json'))
    expect(summary).toMatchObject({ outcome: 'done', state: 'DONE', fixAttempts: 1 })
  }, 120_000)
})

describe('the guide to runs', () => {
  it('shows only code that stands in examples/runs-guide, and all of it', () => {
    const shown = [...readFileSync('docs/guides/runs.md', 'utf8').matchAll(/```ts\n(.*?)```/gs)]
    const names = readdirSync('examples/runs-guide')
    const files = names.map((name) => readFileSync(`examples/runs-guide/${name}`, 'utf8'))
    expect(shown.map(([, code]) => code).sort()).toEqual(files.sort())
  })

  it('shows code that runs', () => {
    expect(runIn(freshFolder(), 'runs-guide/main.ts').split('\n')).toEqual([
      'done done',
      'count texts/a.txt skip ended',
      'count texts/b.txt skip ended',
      'write report skip ended',
      '',
    ])
  })
})

function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-example-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const outputs = new Map<string, string>()

/** What a compiled example prints in a process of its own; a failure throws it. */
function run(path: string, ...args: string[]): string {
  const line = [path, ...args].join(' ')
  const output = outputs.get(line) ?? runIn('.', path, ...args)
  outputs.set(line, output)
  return output
}

function runIn(cwd: string, path: string, ...args: string[]): string {
  const program = resolve(`.build/programs/examples/${path.replace(/\.ts$/, '.js')}`)
  return execFileSync(process.execPath, [program, ...args], { cwd, encoding: 'utf8' })
}
