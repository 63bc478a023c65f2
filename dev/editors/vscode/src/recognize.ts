/**
 * Distinguishes Meta-TF DTDs from XML DTDs: both have the extension `.dtd`.
 *
 * An XML DTD begins with a declaration (`<`) or a reference to an entity (`%`), a Meta-TF DTD with a comment (`/`) or a
 * name. An empty text is neither.
 */
export function isMetaTF(text: string): boolean {
  return /^[\uFEFF\s]*[A-Za-z_/]/.test(text);
}
