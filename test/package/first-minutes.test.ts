// The first page of the README, followed literally in an empty folder with the packed package.
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { snippetsIn } from '../support/snippets.ts'

const run = promisify(execFile)

it('the README leads from an empty folder to a job that explains itself', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-first-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const options = ['--ignore-scripts', '--silent', '--pack-destination', folder]
  const tarball = execFileSync('npm', ['pack', ...options], { encoding: 'utf8' }).trim()

  const [install, use] = snippetsIn('README.md', 'sh').map(({ code }) => code.trim().split('\n'))
  const [program] = snippetsIn('README.md', 'js')
  writeFileSync(join(folder, 'first-job.mjs'), program?.code ?? '')
  const here = async (line: string) => (await run('sh', ['-c', line], { cwd: folder })).stdout

  for (const line of install ?? []) {
    const quick = '--no-audit --no-fund --prefer-offline'
    await here(line.replace('install pawl', `install ${quick} ./${tarball}`))
  }
  const [start = '', list = '', show = ''] = use ?? []
  expect(await here(start)).toBe('succeeded Hello Ann\n')
  const [id = ''] = (await here(list)).split('\t')
  const shown = await here(show.replace('ID', id))
  expect(shown).toContain('error: Error: the mail server is away')
  expect(shown).toContain('running → succeeded')
}, 120_000)
