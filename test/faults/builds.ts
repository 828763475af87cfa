/**
 * Whether `one` says nothing that `other` does not: members that only a newer build knows may be missing in it, at any
 * depth.
 */
export const saysNoOther = (one: unknown, other: unknown): boolean => {
  if (Array.isArray(one)) {
    return Array.isArray(other) && one.length === other.length && one.every((item, at) => saysNoOther(item, other[at]));
  }
  if (!isObject(one) || !isObject(other)) return one === other;
  return Object.entries(one).every(([name, value]) => name in other && saysNoOther(value, other[name]));
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
