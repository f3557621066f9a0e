/** Where code of this package runs from, also in bundles. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/**
 * The URL of the file that runs: `import.meta.url` of a module. Bundles in the format of CommonJS
 * have none; there it is the file of the bundle, or a name in the current folder.
 */
export function ownUrl(url: string | undefined): string {
  if (url !== undefined) return url
  const bundle = typeof __filename === 'string' ? __filename : join(process.cwd(), 'index.js')
  return pathToFileURL(bundle).href
}
