/** What the ten networks take of files: rules as data, and the pure functions that hold a file against them. */
export { minVideoBytes } from './blocks.ts';
export type * from './rules.ts';
export { mediaRules, useRules } from './table.ts';
export { coverOf, posterFits, takesCover, useOf } from './use.ts';
export { isStill, type Misfit, violations as misfits, wrapping } from './violations.ts';
