/** The version of this package, as in package.json; bundled programs cannot read that file. */
export const VERSION = '0.1.0'
