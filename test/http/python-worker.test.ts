// The worker in Python with its standard library alone, killed with kill -9 in the middle of a job.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { HttpBench } from './bench.ts'
import { STORES } from './places.ts'

const PROGRAM = fileURLToPath(new URL('../../examples/python-worker/worker.py', import.meta.url))

function startWorker(bench: HttpBench, name: string, seconds: string): ChildProcess {
  const env = {
    ...process.env,
    PAWL_URL: bench.server.url,
    PAWL_TOKEN: bench.tokens.work,
    PAWL_WORKER: name,
    PAWL_LEASE_MS: '1500',
    RESIZE_SECONDS: seconds,
  }
  const child = spawn('python3', [PROGRAM], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  return child
}

describe.each(STORES)('the worker in Python on $name', ({ place }) => {
  it('finishes every job once, although a worker is killed in the middle of one', async () => {
    const bench = await HttpBench.open(await place())
    const job = { type: 'resize', input: { name: 'cat.png' } }
    const { id: interrupted } = await bench.post('/api/v1/jobs', job)
    const first = startWorker(bench, 'py-1', '600')
    // It prints the id of the job after its first step.
    const [line] = (await once(first.stdout as NodeJS.ReadableStream, 'data')) as [Buffer]
    expect(line.toString()).toContain(interrupted)
    first.kill('SIGKILL')
    await once(first, 'exit')
    const { jobs } = await bench.post('/api/v1/jobs/batch', { jobs: Array(5).fill(job) })
    const bad = await bench.post('/api/v1/jobs', { type: 'resize', input: { name: 7 } })
    const second = startWorker(bench, 'py-2', '0')
    const ids = [interrupted, ...jobs.map(({ id }: { id: string }) => id)]
    for (const id of ids) {
      expect(await bench.pawl.job(id).result()).toMatchObject({ output: { size: 14 } })
    }
    // The attempt of the killed worker has expired, and its step was not repeated.
    const { items } = await bench.get(`/api/v1/jobs/${interrupted}/facts`)
    const triggers = items.map(({ fact }: { fact: { trigger: string } }) => fact.trigger)
    expect(triggers.filter((one: string) => one === 'expire')).toHaveLength(1)
    expect(triggers.filter((one: string) => one === 'step')).toHaveLength(1)
    const commits = await bench.get('/api/v1/audit?trigger=commit&limit=100')
    expect(commits.items).toHaveLength(ids.length)
    const { job: failed } = await bench.get(`/api/v1/jobs/${bad.id}`)
    expect(failed.error).toMatchObject({
      name: 'TypeError',
      message: expect.stringContaining('len'),
    })
    second.kill('SIGTERM')
    expect(await once(second, 'exit')).toEqual([0, null])
    const { items: left } = await bench.get('/api/v1/workers')
    expect(left.map(({ id }: { id: string }) => id)).toEqual(['py-1'])
    expect((await bench.post('/api/v1/doctor/check', { full: true })).errors).toBe(0)
  })

  it('waits without a lease for an approval, sleeps, and goes on in later attempts', async () => {
    const bench = await HttpBench.open(await place())
    const { id } = await bench.post('/api/v1/jobs', { type: 'publish' })
    const first = startWorker(bench, 'py-1', '0')
    await expect
      .poll(async () => (await bench.get(`/api/v1/jobs/${id}`)).job.state, { timeout: 20_000 })
      .toBe('waiting')
    // Another process goes on with it.
    first.kill('SIGKILL')
    await once(first, 'exit')
    const second = startWorker(bench, 'py-2', '0')
    const { done } = await bench.post(`/api/v1/jobs/${id}/approve`, { reason: 'looks good' })
    expect(done).toBe(1)
    const ended = await bench.pawl.job(id).result({ timeout: '30s' })
    expect(ended).toMatchObject({ output: { published: true, by: 'admin-owner' } })
    const facts = await bench.pawl.store.facts(id)
    expect(facts.filter(({ trigger }) => trigger === 'step')).toHaveLength(1)
    expect(facts.flatMap(({ wait }) => (wait ? [`${wait.for} ${wait.name}`] : []))).toEqual([
      'signal approval',
      'sleep cool-off',
    ])
    expect((await bench.post('/api/v1/doctor/check', { full: true })).errors).toBe(0)
    second.kill('SIGTERM')
    await once(second, 'exit')
  })
})
