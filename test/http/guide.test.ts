// The lines of the guide with curl, run against a server.
import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { Place } from '../cli/pawl.ts'
import { serving } from '../cli/serving.ts'
import { snippetsIn } from '../support/snippets.ts'

it('the guide shows calls that work, in the order in which they stand there', async () => {
  const place = new Place()
  const { url } = await serving(place)
  const blocks = snippetsIn('docs/guides/http.md', 'sh').filter(({ code }) => code.includes('curl'))
  expect(blocks).toHaveLength(5)
  let job = ''
  for (const { code, line } of blocks) {
    const env = { ...process.env, PAWL_URL: url, JOB: job }
    const { status, stdout, stderr } = spawnSync('sh', ['-ec', code], { env, encoding: 'utf8' })
    expect([line, status, stderr]).toEqual([line, 0, expect.any(String)])
    job ||= (JSON.parse(stdout) as { id: string }).id
  }
  const [fact] = await place.json<object>('audit', 'list', '--trigger', 'cancel')
  expect(fact).toMatchObject({ jobId: job, operator: 'ada', note: 'INC-7' })
})
