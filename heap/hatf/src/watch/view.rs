//! The user's view settings and actions.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::functions::Sort;

/// Maximum length of a mark's name in characters.
const NAME: usize = 60;

/// Content of the lower part of the screen. A wide screen shows sizes and threads next to the functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Panel {
    /// Functions that hold memory.
    #[default]
    Functions,
    /// Sizes and threads.
    Sizes,
    /// Output of the program.
    Output,
    /// Help for the keys.
    Help,
}

/// An action requested by a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Draw the screen.
    None,
    /// Leave the screen.
    Leave,
    /// Interrupt the program.
    Interrupt,
    /// Suspend the process, as Ctrl-Z does, until the shell continues it.
    Suspend,
    /// Redraw the entire screen.
    Redraw,
    /// Set a mark with this name.
    Mark(String),
    /// Write an HTML report of the current state.
    Page,
}

/// The user's view settings.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Sort order of functions.
    pub sort: Sort,
    /// Whether the display is paused. Reading continues.
    pub paused: bool,
    /// Number of rows scrolled past.
    pub scroll: usize,
    /// Content of the lower part.
    pub panel: Panel,
    /// Name of a mark being typed.
    pub name: Option<String>,
    /// Message about the last action.
    pub message: Option<String>,
    /// Number of marks set.
    pub marks: u64,
}

impl View {
    /// Handles a key and returns the action.
    pub fn key(&mut self, key: KeyEvent) -> Action {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return Action::Interrupt,
            KeyCode::Char('z') if control => return Action::Suspend,
            KeyCode::Char('l') if control => return Action::Redraw,
            _ => {}
        }
        if self.name.is_some() {
            return self.type_name(key.code);
        }
        self.message = None;
        match key.code {
            KeyCode::Char('q') => return Action::Leave,
            KeyCode::Char('w') => return Action::Page,
            KeyCode::Char('m') => self.name = Some(String::new()),
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('s') => (self.sort, self.scroll) = (self.sort.next(), 0),
            KeyCode::Char('o') => self.turn_to(Panel::Output),
            KeyCode::Char('t') => self.turn_to(Panel::Sizes),
            KeyCode::Char('?' | 'h') => self.turn_to(Panel::Help),
            KeyCode::Esc => self.turn_to(self.panel),
            KeyCode::Down | KeyCode::Char('j') => self.scroll = self.scroll.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::PageDown => self.scroll = self.scroll.saturating_add(10),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(10),
            KeyCode::Home => self.scroll = 0,
            _ => {}
        }
        Action::None
    }

    /// Shows a panel, or returns to the functions if the panel is already shown.
    fn turn_to(&mut self, panel: Panel) {
        self.panel = if self.panel == panel { Panel::Functions } else { panel };
        self.scroll = 0;
    }

    /// Handles a key while a mark's name is typed.
    fn type_name(&mut self, key: KeyCode) -> Action {
        let Some(name) = &mut self.name else { return Action::None };
        match key {
            KeyCode::Char(letter) if name.chars().count() < NAME => name.push(letter),
            KeyCode::Backspace => drop(name.pop()),
            KeyCode::Esc => self.name = None,
            KeyCode::Enter => {
                self.marks += 1;
                let name = self.name.take().unwrap_or_default();
                let name = name.trim();
                return Action::Mark(if name.is_empty() { format!("watch-{}", self.marks) } else { name.to_owned() });
            }
            _ => {}
        }
        Action::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(view: &mut View, keys: &str) -> Vec<Action> {
        let code = |letter| match letter {
            '\n' => KeyCode::Enter,
            '\u{8}' => KeyCode::Backspace,
            '\u{1b}' => KeyCode::Esc,
            letter => KeyCode::Char(letter),
        };
        keys.chars().map(|letter| view.key(KeyEvent::new(code(letter), KeyModifiers::NONE))).collect()
    }

    #[test]
    fn keys_change_what_is_seen() {
        let mut view = View::default();
        press(&mut view, "spjj");
        assert_eq!((view.sort, view.paused, view.scroll), (Sort::Growth, true, 2));
        press(&mut view, "sssp");
        assert_eq!((view.sort, view.paused, view.scroll), (Sort::Live, false, 0));
        press(&mut view, "oo?t");
        assert_eq!(view.panel, Panel::Sizes);
        press(&mut view, "\u{1b}");
        assert_eq!(view.panel, Panel::Functions);
        assert_eq!(press(&mut view, "wq"), [Action::Page, Action::Leave]);
    }

    /// Letters typed into a mark's name trigger no actions, and canceling the name sets no mark.
    #[test]
    fn marks_are_named() {
        let mut view = View::default();
        let done = press(&mut view, "mqs\u{8}p x\n");
        assert_eq!(done.last(), Some(&Action::Mark("qp x".to_owned())));
        assert_eq!((view.sort, view.paused, view.name.clone()), (Sort::Live, false, None));
        assert_eq!(press(&mut view, "mab\u{1b}").last(), Some(&Action::None));
        assert_eq!(press(&mut view, "m\n").last(), Some(&Action::Mark("watch-2".to_owned())));
        press(&mut view, "m");
        press(&mut view, &"x".repeat(1000));
        assert_eq!(press(&mut view, "\n"), [Action::Mark("x".repeat(NAME))]);
    }

    #[test]
    fn keys_with_control() {
        let mut view = View { name: Some(String::new()), ..View::default() };
        for (key, action) in [('c', Action::Interrupt), ('z', Action::Suspend), ('l', Action::Redraw)] {
            assert_eq!(view.key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL)), action);
        }
    }
}
