// A doctor in a process of its own, for `doctor.ts`: one full check, or one after the other.
import { createPawl } from 'pawl'

const [place = '', how] = process.argv.slice(2)
await using pawl = await createPawl({ store: place })
do {
  const start = performance.now()
  let told = false
  const report = await pawl.doctor().check({
    full: true,
    onProgress: () => {
      if (!told) process.stdout.write('looking\n')
      told = true
    },
  })
  if (report.errors > 0) throw new Error(JSON.stringify(report.findings.slice(0, 3)))
  const seconds = (performance.now() - start) / 1000
  const rssMiB = process.resourceUsage().maxRSS / 1024
  process.stdout.write(`${JSON.stringify({ seconds, rssMiB, jobs: report.jobs })}\n`)
} while (how === 'again')
