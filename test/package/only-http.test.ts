// The packed package in an empty folder, used by its command line and HTTP alone: no code of the
// library is written. A worker is a few requests of curl.
import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import type { Answer } from '../http/client.ts'

const run = promisify(execFile)

it('the packed package works by its command line and HTTP alone', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-http-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const options = ['--ignore-scripts', '--silent', '--pack-destination', folder]
  const tarball = execFileSync('npm', ['pack', ...options], { encoding: 'utf8' }).trim()
  const quick = ['--no-audit', '--no-fund', '--prefer-offline', '--silent']
  await run('npm', ['install', ...quick, `./${tarball}`, '@photostructure/sqlite'], { cwd: folder })
  const program = join(folder, 'node_modules', '.bin', 'pawl')
  const pawl = async (...args: string[]) => (await run(program, args, { cwd: folder })).stdout

  const server = spawn(program, ['serve', '--port', '0'], { cwd: folder })
  onTestFinished(() => void server.kill('SIGKILL'))
  const failed = once(server, 'exit').then(() => Promise.reject(new Error('pawl serve ended')))
  failed.catch(() => {})
  const [line] = (await Promise.race([once(server.stdout, 'data'), failed])) as [Buffer]
  const url = line.toString().trim()
  const token = JSON.parse(await pawl('token', 'create', 'ada', '--role', 'admin', '--json'))
  const ask = async (method: string, path: string, body?: object): Promise<Answer['json']> => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token.token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    expect([path, response.status < 300]).toEqual([path, true])
    return response.json()
  }

  const { id } = await ask('POST', '/api/v1/jobs', { type: 'resize', input: { width: 7 } })
  const { jobs } = await ask('POST', '/api/v1/claim', { worker: 'sh-1', types: ['resize'] })
  expect(jobs).toEqual([expect.objectContaining({ id, attempt: 1, input: { width: 7 } })])
  await ask('POST', '/api/v1/leases/commit', { lease: jobs[0].lease, result: { ok: true } })
  const why = { reason: 'INC-7' }
  await ask('POST', '/api/v1/schedules/nightly', { ...why, type: 'resize', cron: '0 3 * * *' })
  await ask('POST', '/api/v1/limits/queue%2Fdefault/set', { ...why, concurrency: 2 })
  expect((await ask('GET', '/api/v1/overview')).ended).toEqual({ succeeded: 1 })

  // The command line sees the same, in processes of its own.
  const shown = JSON.parse(await pawl('job', 'show', id, '--json'))
  expect(JSON.stringify(shown)).toContain('succeeded')
  const [limit] = (await pawl('limit', 'list', '--json')).trim().split('\n')
  expect(JSON.parse(limit as string)).toMatchObject({ max: 2, setting: { overrideBy: 'ada' } })
  expect(await pawl('schedule', 'list')).toContain('nightly')
  expect(JSON.parse(await pawl('doctor', '--json')).errors).toBe(0)
  server.kill('SIGTERM')
  const [code] = (await once(server, 'exit')) as [number]
  expect(code).toBe(0)
}, 180_000)
