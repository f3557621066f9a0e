// `npm run lock`: adds to package-lock.json the platform packages that npm left out of it. Tools
// written in native code come as one optional package per platform, and npm locks only those that
// it could load where the lock file was written. `npm ci` then refuses the lock file, or leaves a
// tool without its program on the other platforms.
import { readFileSync, writeFileSync } from 'node:fs'

const path = 'package-lock.json'
const systems = ['android', 'darwin', 'freebsd', 'linux', 'openharmony', 'win32']
const processors = ['arm', 'arm64', 'ia32', 'loong64', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64']

const lock = JSON.parse(readFileSync(path, 'utf8'))
const added = []
for (const parent of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`
    const platform = platformOf(name)
    if (lock.packages[key] || !platform) continue
    const { cpu, libc, os } = platform
    const dev = parent.dev
    // Fields stand in npm's own order, and undefined ones are not written.
    lock.packages[key] = { version, cpu, dev, libc, optional: true, os }
    added.push(name)
  }
}
if (added.length > 0) {
  lock.packages = Object.fromEntries(
    Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, 'en')),
  )
  writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`)
}
console.log(`${added.length} platform packages added to ${path}`)

/** The platform for which a package is made, as its name tells; undefined if it does not. */
function platformOf(name) {
  const words = name.split(/[/-]/)
  const cpu = processors.find((processor) => words.includes(processor))
  const os = systems.find((system) => words.includes(system))
  const libc = /-musl/.test(name) ? 'musl' : /-gnu/.test(name) ? 'glibc' : undefined
  return cpu && { cpu: [cpu], libc: libc && [libc], os: os && [os] }
}
