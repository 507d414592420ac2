(CNN) -- Story 5 begins

  It "goes on"  
and ends.

@highlight

First point 5

@highlight

Second”
