const write = (value: unknown, out: string[]): void => {
  if (Array.isArray(value)) {
    out.push('[');
    for (const [index, one] of value.entries()) {
      if (index > 0) out.push(',');
      write(one ?? null, out);
    }
    out.push(']');
  } else if (typeof value === 'object' && value !== null) {
    let first = true;
    out.push('{');
    // By code units: the default of sort(), and faster than a comparison function.
    for (const name of Object.keys(value).sort()) {
      const one = (value as Record<string, unknown>)[name];
      if (one === undefined) continue;
      out.push(first ? '' : ',', JSON.stringify(name), ':');
      write(one, out);
      first = false;
    }
    out.push('}');
  } else out.push(JSON.stringify(value) ?? 'null');
};

/**
 * JSON with members in code-unit order at every depth: equal values have equal text. Undefined members are left out.
 * The text is joined once: joined at each level, a long text 32 levels deep would be copied 32 times.
 */
export const canonicalJson = (value: unknown): string => {
  const out: string[] = [];
  write(value, out);
  return out.join('');
};
