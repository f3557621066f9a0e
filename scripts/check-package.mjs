// The `package` step of `npm test`: the package as npm packs it, seen by publint and by
// @arethetypeswrong/cli, which resolves every entry as TypeScript does in each module mode.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from './process.mjs'

const folder = mkdtempSync(join(tmpdir(), 'pawl-package-'))
try {
  await check('publint', ['--strict'])
  const packed = await check('npm', [
    ...['pack', '--json', '--ignore-scripts', '--loglevel=error'],
    ...['--pack-destination', folder],
  ])
  const [{ filename }] = JSON.parse(packed)
  // The package is ES modules alone, so how CommonJS of old would see it does not matter.
  await check('attw', [join(folder, filename), '--profile', 'esm-only', '--format', 'ascii'])
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** Runs a command; if it fails, prints what it printed and fails as well. */
async function check(command, args) {
  const { ok, stdout, stderr } = await run(command, args)
  if (!ok) {
    process.stderr.write(`${command} ${args.join(' ')}\n${stdout}${stderr}`)
    process.exitCode = 1
  }
  return stdout
}
